"""Third-party libraries as link options."""

load("@deps//:paths.bzl", "DEPS")

def archive_library(name, archives = [], linkopts = [], deps = [], tsan = True):
    """A library that is only its archives on the link line.

    Args:
      name: target name.
      archives: file names under the lib/ folder of scripts/setup's libraries.
      linkopts: options besides the archives (system libraries).
      deps: other archive libraries that these need.
      tsan: False where there is no build with ThreadSanitizer: such a library does not link under it.
    """
    plain = [DEPS + "/plain/lib/" + archive for archive in archives]
    native.cc_library(
        name = name,
        linkopts = select({
            ":thread_sanitizer": [DEPS + "/tsan/lib/" + archive for archive in archives] if tsan else ["no-%s-under-thread-sanitizer" % name],
            "//conditions:default": plain,
        }) + linkopts,
        deps = deps,
    )
