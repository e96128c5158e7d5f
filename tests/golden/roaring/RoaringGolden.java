/* Prints length and CRC-32 of 64-bit portable vectors as the Java Roaring library writes them for
 * positions that are added one by one, then run-optimised: the table in check_bitmap64.c.
 *
 *   mvn -q dependency:copy -Dartifact=org.roaringbitmap:RoaringBitmap:1.3.0 -DoutputDirectory=/tmp
 *   java -cp /tmp/RoaringBitmap-1.3.0.jar RoaringGolden.java */
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HexFormat;
import java.util.zip.CRC32;
import org.roaringbitmap.RoaringBitmap;

class RoaringGolden {
	static void print(String name, RoaringBitmap... bitmaps) {
		int n = 8;
		for (RoaringBitmap b : bitmaps) {
			b.runOptimize();
			n += 4 + b.serializedSizeInBytes();
		}
		ByteBuffer out = ByteBuffer.allocate(n).order(ByteOrder.LITTLE_ENDIAN);
		out.putLong(bitmaps.length);
		for (int i = 0; i < bitmaps.length; i++) {
			out.putInt(i);
			bitmaps[i].serialize(out);
		}
		CRC32 crc = new CRC32();
		crc.update(out.array());
		String hex = n > 100 ? "" : HexFormat.of().formatHex(out.array());
		System.out.printf("%s %d %08x %s%n", name, n, crc.getValue(), hex);
	}

	static RoaringBitmap each(int from, int end, int step) {
		RoaringBitmap r = new RoaringBitmap();
		for (int i = from; i < end; i += step) r.add(i);
		return r;
	}

	static RoaringBitmap blocks(int count, int every, int length) {
		RoaringBitmap r = new RoaringBitmap();
		for (int i = 0; i < count; i++)
			for (int k = 0; k < length; k++) r.add(i * every + k);
		return r;
	}

	static RoaringBitmap random(int count, int below) {
		RoaringBitmap r = new RoaringBitmap();
		long x = 12345;
		for (int i = 0; i < count; i++) {
			x = x * 6364136223846793005L + 1442695040888963407L;
			r.add((int) ((x >>> 33) % below));
		}
		return r;
	}

	public static void main(String[] args) {
		print("0-2", each(0, 3, 1));
		print("0-3", each(0, 4, 1));
		print("0-2,5-7", RoaringBitmap.bitmapOf(0, 1, 2, 5, 6, 7));
		print("4096 even", each(0, 8192, 2));
		print("4097 even", each(0, 8194, 2));
		print("thirds", each(0, 200000, 3));
		print("2046 blocks", blocks(2046, 32, 20));
		print("2047 blocks", blocks(2047, 32, 20));
		print("2048 blocks", blocks(2048, 32, 20));
		print("full container", each(0, 65536, 1));
		print("0-299999", each(0, 300000, 1));
		print("random", random(100000, 1000000));
		print("key 2", new RoaringBitmap(), new RoaringBitmap(), RoaringBitmap.bitmapOf(7));
	}
}
