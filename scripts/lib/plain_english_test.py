"""Tests of the search for sentences that are not plain English, and of the proof that a change is in comments alone."""

import unittest

import plain_english
import same_code


class PlainEnglishTest(unittest.TestCase):
    def test_each_pattern_is_found(self):
        for sentence, patterns in [
            ("What is written is sent.", ["begins"]),
            ("What does a writer do?", []),
            ("Of the thread that closes.", ["of"]),
            ("Of course it ends.", []),
            ("It looks so often.", ["so"]),
            ("It sends so many that the queue is full.", []),
            ("The thread wakes who waits for it.", ["noun"]),
            ("It frees what is left.", ["noun"]),
            ("An operator who stops it loses nothing.", []),
            ("The message says what is wrong.", []),
            ("It sends `what is left` to \"who waits\".", []),
        ]:
            self.assertEqual(plain_english.findings(sentence), patterns, sentence)

    def test_comments_of_a_source(self):
        source = 'int a;  // One.\nint b = F("// no");\n// Two goes\n// on. Three.\nint c;\n// NOLINT(x)\n  // Four.\n'
        found = [(line, plain_english.sentences(prose)) for line, prose in plain_english.comment_blocks(source)]
        self.assertEqual(found, [(1, ["One."]), (3, ["Two goes on.", "Three."]), (7, ["Four."])])

    def test_paragraphs_of_a_document(self):
        found = list(plain_english.markdown_blocks("# Head\ntext goes\non\n\n```\ncode\n```\n- item\n| a | b |\n"))
        self.assertEqual(found, [(1, "Head"), (2, "text goes on"), (8, "item"), (9, "a"), (9, "b")])


class SameCodeTest(unittest.TestCase):
    def test_comments_and_empty_lines_do_not_count(self):
        self.assertEqual(same_code.code_of('int a;  // x\n\n// y\nint b; /* z */\n'), same_code.code_of('int a;\nint b;\n// w\n'))

    def test_code_counts(self):
        for one, other in [("int a;", "int b;"), ('F("// a");', 'F("// b");'), ("F('\"'); // a", "F('\"', 1); // a"),
                           ('F(R"(// a)");', 'F(R"(// b)");')]:
            self.assertNotEqual(same_code.code_of(one), same_code.code_of(other), one)


if __name__ == '__main__':
    unittest.main()
