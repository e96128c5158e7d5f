import java.io.File;
import java.io.IOException;
import org.apache.iceberg.Files;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Files of the local disk without Hadoop, whose own writes a checksum file beside each one. With
 * -Dput-delay-ms=N a write takes that much longer, as the daemon's does with fs.put-delay-ms.
 */
public class LocalFiles implements FileIO {
  private static final long DELAY_MS = Long.getLong("put-delay-ms", 0);

  private static File file(String path) {
    return new File(path.startsWith("file:") ? path.replaceFirst("^file:/*", "/") : path);
  }

  /** Closing is where an object store's upload ends. */
  private static class Slow extends PositionOutputStream {
    private final PositionOutputStream out;
    private boolean closed;

    Slow(PositionOutputStream out) {
      this.out = out;
    }

    @Override
    public long getPos() throws IOException {
      return out.getPos();
    }

    @Override
    public long storedLength() throws IOException {
      return out.storedLength();
    }

    @Override
    public void write(int b) throws IOException {
      out.write(b);
    }

    @Override
    public void write(byte[] b, int from, int n) throws IOException {
      out.write(b, from, n);
    }

    @Override
    public void flush() throws IOException {
      out.flush();
    }

    @Override
    public void close() throws IOException {
      out.close();
      if (!closed && DELAY_MS > 0) {
        try {
          Thread.sleep(DELAY_MS);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
      closed = true;
    }
  }

  /** Keeps the path as it was given, which metadata is compared by. */
  private record In(String location, InputFile file) implements InputFile {
    @Override
    public long getLength() {
      return file.getLength();
    }

    @Override
    public SeekableInputStream newStream() {
      return file.newStream();
    }

    @Override
    public boolean exists() {
      return file.exists();
    }
  }

  private record Out(String location, OutputFile file) implements OutputFile {
    @Override
    public PositionOutputStream create() {
      return new Slow(file.create());
    }

    @Override
    public PositionOutputStream createOrOverwrite() {
      return new Slow(file.createOrOverwrite());
    }

    @Override
    public InputFile toInputFile() {
      return new In(location, Files.localInput(LocalFiles.file(location)));
    }
  }

  @Override
  public InputFile newInputFile(String path) {
    return new In(path, Files.localInput(file(path)));
  }

  @Override
  public OutputFile newOutputFile(String path) {
    return new Out(path, Files.localOutput(file(path)));
  }

  @Override
  public void deleteFile(String path) {
    file(path).delete();
  }
}
