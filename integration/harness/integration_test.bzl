"""Tests of whole systems."""

load("//bazel:build.bzl", "deut_cc_test")

# Programs, by the names of the variables in which a test finds where they are.
_DAEMONS = {
    "DCD": "//dc:dcd",
    "TCD": "//tc:tcd",
}

def integration_test(name, programs = {}, data = [], env = {}, tags = [], **kwargs):
    """A test that starts both daemons. `scripts/test integration` runs it.

    Args:
      name: as for deut_cc_test.
      programs: further ones that it starts, by the names of their variables.
      data: besides the programs.
      env: besides the variables of the programs.
      tags: besides `integration`.
      **kwargs: as for deut_cc_test.
    """
    programs = dict(_DAEMONS, **programs)
    deut_cc_test(
        name = name,
        data = data + programs.values(),
        env = dict(env, **{variable: "$(rootpath %s)" % program for variable, program in programs.items()}),
        tags = ["integration"] + tags,
        **kwargs
    )
