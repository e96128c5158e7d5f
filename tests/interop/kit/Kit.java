package org.apache.iceberg.rest;

import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import org.apache.iceberg.catalog.Namespace;
import org.junit.jupiter.api.AfterEach;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs the kit, or with "more" the tests of names that the kit leaves out for every REST server; prints a line a test. */
public class Kit implements TestExecutionListener {
  /** The kit with everything about names that a catalog may support. */
  static class MoreNames extends RESTCompatibilityKitCatalogTests {
    @Override
    protected boolean supportsNamesWithSlashes() {
      return true;
    }

    @Override
    protected boolean supportsNestedNamespaces() {
      return true;
    }

    /** The tests of nested namespaces take for granted that none is left by another. */
    @AfterEach
    public void dropNested() {
      Namespace parent = Namespace.of("parent");
      if (catalog().namespaceExists(parent)) {
        catalog().listNamespaces(parent).forEach(catalog()::dropNamespace);
        catalog().dropNamespace(parent);
      }
    }
  }

  private static String name(TestIdentifier id) {
    return id.getSource()
        .filter(MethodSource.class::isInstance)
        .map(MethodSource.class::cast)
        .map(m -> m.getJavaClass().getSimpleName() + "." + m.getMethodName())
        .orElse(id.getDisplayName());
  }

  private synchronized void say(String result, TestIdentifier id, Object why) {
    String text = String.valueOf(why).strip().replaceAll("\\s+", " ");
    System.out.println(result + " " + name(id) + " " + text.substring(0, Math.min(text.length(), 300)));
  }

  @Override
  public void executionSkipped(TestIdentifier id, String reason) {
    say("skipped", id, reason);
  }

  @Override
  public void executionFinished(TestIdentifier id, TestExecutionResult result) {
    Throwable why = result.getThrowable().orElse(null);
    if (id.isContainer() && why == null) {
      return;
    }
    switch (result.getStatus()) {
      case SUCCESSFUL -> say("passed", id, "");
      case ABORTED -> say("skipped", id, why);
      default -> say("failed", id, why);
    }
  }

  public static void main(String[] args) {
    var request = LauncherDiscoveryRequestBuilder.request();
    if (args.length > 0 && args[0].equals("more")) {
      request.selectors(selectClass(MoreNames.class));
    } else {
      request.selectors(
          selectClass(RESTCompatibilityKitCatalogTests.class),
          selectClass(RESTCompatibilityKitViewCatalogTests.class));
    }
    LauncherFactory.create().execute(request.build(), new Kit());
    // The client leaves threads behind that would keep the machine running.
    System.exit(0);
  }
}
