"""clang-19 with a static libc++ and lld, as Debian 12 installs them.

Features that .bazelrc switches on: asan, tsan, fuzz, test_points, mutations. Those of a target:
layering_check (every include comes from a direct dependency), on for our own code.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load(
    "@bazel_tools//tools/cpp:cc_toolchain_config_lib.bzl",
    "feature",
    "feature_set",
    "flag_group",
    "flag_set",
    "tool_path",
    "with_feature_set",
)
load("@deps//:paths.bzl", "DEPS", "DEPS_INCLUDE", "SYSTEM_INCLUDES")

_C_AND_CXX = [
    ACTION_NAMES.c_compile,
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.cpp_module_compile,
    ACTION_NAMES.assemble,
    ACTION_NAMES.preprocess_assemble,
    ACTION_NAMES.linkstamp_compile,
]

_CXX = [
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.cpp_module_compile,
    ACTION_NAMES.linkstamp_compile,
]

_LINK = [
    ACTION_NAMES.cpp_link_executable,
    ACTION_NAMES.cpp_link_dynamic_library,
    ACTION_NAMES.cpp_link_nodeps_dynamic_library,
]

PROFILE = "bazel/profile/release.profdata"

_SANITIZERS = ["asan", "tsan"]

def _flags(actions, flags, with_features = [], not_features = []):
    return flag_set(
        actions = actions,
        flag_groups = [flag_group(flags = flags)],
        with_features = [with_feature_set(features = with_features, not_features = not_features)],
    )

def _language_feature():
    return feature(
        name = "default_compile_flags",
        enabled = True,
        flag_sets = [
            _flags(_C_AND_CXX, [
                # 16-byte words are loaded and swapped by one instruction; the libraries are built alike.
                "-march=x86-64-v3",
                "-fPIE",
                "-g1",
                "-fno-omit-frame-pointer",
                "-fstack-protector-strong",
                "-fcolor-diagnostics",
                "-isystem",
                DEPS_INCLUDE,
                # The same bytes wherever it is compiled, and no folder of the builder's machine in them.
                "-ffile-compilation-dir=.",
                "-ffile-prefix-map=%s=deps" % DEPS,
                "-Wno-builtin-macro-redefined",
                "-D__DATE__=\"redacted\"",
                "-D__TIME__=\"redacted\"",
                "-D__TIMESTAMP__=\"redacted\"",
            ]),
            _flags(_CXX, [
                "-std=c++20",
                "-stdlib=libc++",
                # The libraries' headers still name what C++20 removed.
                "-D_LIBCPP_ENABLE_CXX20_REMOVED_FEATURES",
            ]),
            _flags(_C_AND_CXX, ["-O2", "-DNDEBUG"], ["opt"], _SANITIZERS + ["test_points"]),
            _flags(_C_AND_CXX, ["-O2"], ["opt", "test_points"], _SANITIZERS),
            _flags(_C_AND_CXX, ["-O0", "-g"], ["dbg"], _SANITIZERS),
            _flags(_C_AND_CXX, ["-O0"], ["fastbuild"], _SANITIZERS),
        ],
    )

def _link_feature():
    return feature(
        name = "default_link_flags",
        enabled = True,
        flag_sets = [
            _flags(_LINK, [
                "-fuse-ld=lld-19",
                "-pie",
                "-nostdlib++",
                "-static-libgcc",
                "-Wl,-z,relro,-z,now",
                "-Wl,--gc-sections",
                # Bazel links with clang, not clang++.
                "-l:libc++.a",
                "-l:libc++abi.a",
                "-lpthread",
                "-lm",
                "-ldl",
            ]),
        ],
    )

def _configuration_features():
    return [
        # Of a release: calls go across the borders of our folders' files, so they are compiled together, when a program is linked. It takes 2 to 17 %
        # off the instructions of the hot paths (integration/costs). Not in builds for tests, of which there are many more programs. Its name is
        # not that of Bazel's own feature, which wants tools of its own.
        feature(
            name = "link_time_optimization",
            enabled = True,
            flag_sets = [
                _flags(_C_AND_CXX, ["-flto=thin"], ["opt"], _SANITIZERS + ["test_points"]),
                _flags(_LINK, ["-flto=thin", "-O2"], ["opt"], _SANITIZERS + ["test_points"]),
            ],
        ),
        # A release that counts what it executes, and leaves the counts where LLVM_PROFILE_FILE says when it ends (scripts/profile).
        feature(name = "profile_generate", flag_sets = [
            _flags(_C_AND_CXX + _LINK, ["-fprofile-generate"]),
        ]),
        # A release is optimized for what was counted.
        feature(
            name = "profile_use",
            enabled = True,
            flag_sets = [
                _flags(_C_AND_CXX, [
                    "-fprofile-use=" + PROFILE,
                    # Of what has changed since or was never run nothing is known; that is no mistake.
                    "-Wno-profile-instr-out-of-date",
                    "-Wno-profile-instr-unprofiled",
                    "-Wno-backend-plugin",
                ], ["opt"], _SANITIZERS + ["test_points", "profile_generate"]),
            ],
        ),
        # Named points at which a test stops a thread or fails an operation; never in a release.
        feature(name = "test_points", flag_sets = [
            _flags(_C_AND_CXX, ["-DDEUT_TEST_POINTS=1"]),
            _flags(_CXX, ["-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_EXTENSIVE"]),
        ]),
        # Steps that a rule's test leaves out by name (environment variable DEUT_OMIT).
        feature(name = "mutations", flag_sets = [_flags(_C_AND_CXX, ["-DDEUT_MUTATIONS=1"])]),
        # AddressSanitizer and UndefinedBehaviorSanitizer.
        feature(name = "asan", flag_sets = [
            _flags(_C_AND_CXX, ["-O1"]),
            _flags(_C_AND_CXX + _LINK, [
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=undefined",
            ]),
            _flags(_LINK, ["-fsanitize-link-c++-runtime"]),
        ]),
        feature(name = "tsan", flag_sets = [
            _flags(_C_AND_CXX, ["-O1"]),
            _flags(_C_AND_CXX + _LINK, ["-fsanitize=thread"]),
            _flags(_LINK, ["-fsanitize-link-c++-runtime"]),
        ]),
        # Coverage that libFuzzer reads; the fuzz test itself links libFuzzer (bazel/build.bzl).
        feature(
            name = "fuzz",
            requires = [feature_set(features = ["asan"])],
            flag_sets = [_flags(_C_AND_CXX, ["-fsanitize=fuzzer-no-link"])],
        ),
    ]

def _layering_features():
    compile = [
        ACTION_NAMES.c_compile,
        ACTION_NAMES.cpp_compile,
        ACTION_NAMES.cpp_header_parsing,
    ]
    return [
        # Every C++ library gets a module map, which is only read by the check below.
        feature(name = "module_maps", enabled = True),
        feature(
            name = "use_module_maps",
            requires = [feature_set(features = ["module_maps"])],
            flag_sets = [flag_set(
                actions = compile,
                flag_groups = [flag_group(flags = [
                    "-fmodule-name=%{module_name}",
                    "-fmodule-map-file=%{module_map_file}",
                ])],
            )],
        ),
        feature(
            name = "layering_check",
            implies = ["use_module_maps"],
            flag_sets = [flag_set(
                actions = compile,
                flag_groups = [
                    flag_group(flags = [
                        "-fmodules-strict-decluse",
                        "-Wprivate-header",
                        # We use the maps to check, not to build modules.
                        "-Xclang",
                        "-fno-cxx-modules",
                    ]),
                    flag_group(
                        iterate_over = "dependent_module_map_files",
                        flags = ["-fmodule-map-file=%{dependent_module_map_files}"],
                    ),
                ],
            )],
        ),
    ]

def _impl(ctx):
    tools = {
        "ar": "/usr/bin/llvm-ar-19",
        "cpp": "/usr/bin/clang-cpp-19",
        "dwp": "/usr/bin/llvm-dwp-19",
        "gcc": "/usr/bin/clang-19",
        "gcov": "/bin/false",
        "ld": "/usr/bin/ld.lld-19",
        "nm": "/usr/bin/llvm-nm-19",
        "objcopy": "/usr/bin/llvm-objcopy-19",
        "objdump": "/usr/bin/llvm-objdump-19",
        "strip": "/usr/bin/llvm-strip-19",
    }
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        features = [
            feature(name = "opt"),
            feature(name = "dbg"),
            feature(name = "fastbuild"),
            # Objects go to the linker as they are: no archives in between.
            feature(name = "supports_start_end_lib", enabled = True),
            _language_feature(),
            _link_feature(),
        ] + _configuration_features() + _layering_features(),
        cxx_builtin_include_directories = SYSTEM_INCLUDES + [DEPS_INCLUDE],
        toolchain_identifier = "clang",
        host_system_name = "local",
        target_system_name = "local",
        target_cpu = "k8",
        target_libc = "local",
        compiler = "clang",
        abi_version = "local",
        abi_libc_version = "local",
        tool_paths = [tool_path(name = name, path = path) for name, path in tools.items()],
    )

cc_toolchain_config = rule(
    implementation = _impl,
    provides = [CcToolchainConfigInfo],
)
