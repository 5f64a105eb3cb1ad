"""Tests of the search for names that two classes share."""

import unittest

import one_name


class OneNameTest(unittest.TestCase):
    def test_what_counts_as_a_class(self):
        self.assertEqual(one_name.classes_of('''
// class Not { };
#define MACRO class Nor {
namespace a::b {
class Forward;
class One final : public Base { struct Inner {}; void F() { struct Local {}; } };
struct alignas(64) Two { const char* text = "class X {"; char brace = '{'; };
enum class Three : uint8_t { kA };
template <typename T>
struct Four {};
namespace {
struct Five {};
}
}
struct Six : PoolAllocated {};
'''), ['a::b::One', 'a::b::Two', 'a::b::Three', 'Six'])

    def test_one_name_in_two_files(self):
        one, other = 'namespace a { class X { }; }', 'namespace a { struct X { int n = 0; }; }'
        self.assertEqual(one_name.shared({'one.h': one, 'other.h': other}), {'a::X': ['one.h', 'other.h']})
        self.assertEqual(one_name.shared({'one.h': one, 'other.h': other.replace('namespace a', 'namespace b')}), {})
        self.assertEqual(one_name.shared({'one.h': one, 'other.h': f'namespace {{ {other} }}'}), {})


if __name__ == '__main__':
    unittest.main()
