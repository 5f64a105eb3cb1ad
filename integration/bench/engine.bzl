"""The programs of the benchmark: one for each store."""

load("//bazel:build.bzl", "SYSTEM_MALLOC", "deut_cc_binary", "deut_cc_library", "deut_cc_test")

def bench_engine(name, deps = [], linkopts = [], rival = True):
    """The engine of a store, and the test that it does what every store must.

    Args:
      name: NAME_backend.cc is its source, NAME_engine the program, NAME_conformance_test the test.
      deps: what the backend needs besides the interface.
      linkopts: the rival's library.
      rival: True for a store that is not ours: built and tested only when it is asked for by name, as its library may not be there.
    """
    tags = ["manual"] if rival else []
    deut_cc_library(
        name = name + "_backend",
        srcs = [name + "_backend.cc"],
        # What is linked statically here, of the C++ runtime above all, is hidden from the rival's library, which has its own.
        linkopts = linkopts + (["-Wl,--exclude-libs,ALL"] if rival else []),
        tags = tags,
        deps = deps + [
            ":application",
            "//common/base",
            "@deps//:absl",
        ],
        alwayslink = True,
    )
    deut_cc_binary(
        name = name + "_engine",
        srcs = ["engine_main.cc"],
        # A rival's library frees with the heap that it came with.
        malloc = SYSTEM_MALLOC if rival else "//bazel:malloc",
        tags = tags,
        deps = [
            ":" + name + "_backend",
            ":application",
            ":bench",
            "//common/base",
            "//common/config",
            "//common/io",
            "//common/observe",
            "//common/runtime",
            "//integration/ycsb:ycsb_library",
            "@deps//:absl",
        ],
    )
    deut_cc_test(
        name = name + "_conformance_test",
        size = "medium",
        srcs = ["conformance_test.cc"],
        tags = tags + ["no_asan"],
        deps = [
            ":" + name + "_backend",
            ":application",
            ":bench",
            "//common/base",
            "//common/runtime",
            "//common/testing",
            "//integration/bench/tatp",
            "//integration/bench/tpcc",
            "//integration/ycsb:ycsb_library",
        ],
    )
