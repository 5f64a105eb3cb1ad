"""Tests of the drawing of diagrams."""

import contextlib
import io
import os
import tempfile
import unittest

import diagrams

HEAD = 'title | A figure\nsize 400 300\nsources README.md\n'


def drawn(body, head=HEAD):
    return diagrams.Figure(head + body, exists=lambda path: path == 'README.md').svg()


class DiagramsTest(unittest.TestCase):
    def refused(self, body, why, head=HEAD):
        with self.assertRaisesRegex(diagrams.Fault, why):
            drawn(body, head)

    def test_a_figure(self):
        svg = drawn('# a comment\nbox a 20 60 100 40 tc | *one | ~<two>\nbox b 200 60 100 40 dc | three\narrow a.right b.left both | four\n')
        self.assertIn('<title>A figure</title>', svg)
        self.assertIn('font-weight="bold">one<', svg)
        self.assertIn('&lt;two&gt;', svg)
        self.assertIn('points="120,80 200,75"', drawn('box a 20 60 100 40 tc\nbox b 200 60 100 40 tc\narrow a.right b.left-5 thin'))
        self.assertNotIn('a comment', svg)

    def test_what_must_be_there(self):
        self.refused('', 'title, size or sources', head='title | A figure\nsize 400 300\n')
        self.refused('sources gone.h', 'do not exist: gone.h')
        self.refused('circle 1 2', 'no such element')
        self.refused('box a 20 60 100 40 nothing', 'no style nothing')
        self.refused('box a 20 60 100 40 tc\nbox a 20 160 100 40 tc', 'two boxes')
        self.refused('arrow a.left 1,2', 'line 4')

    def test_faults_of_texts(self):
        self.refused('box a 20 60 60 40 tc | a text that is too long', 'does not fit into a')
        self.refused('text 350 100 | a text that is too long', 'beyond the edge')
        self.refused('text 20 100 | one text\ntext 30 104 | another', 'lies over "another"')
        self.refused('text 20 100 | one text\narrow 40,80 40,200', 'lies over an arrow')
        self.refused('text 20 100 | one text\narrow 40,80 40,200 thin', 'lies over a thin line')
        drawn('box a 20 60 100 40 tc | one text\narrow 70,50 70,200 thin')

    def test_faults_of_arrows(self):
        self.refused('box a 100 60 100 40 tc\narrow 20,80 300,80', 'goes through a')
        self.refused('arrow 20,80 300,80\narrow 100,60 100,200', 'two arrows cross')
        drawn('arrow 20,80 300,80\narrow 100,60 100,200 over')
        self.refused('arrow 20,80 300,84', 'nearly straight')
        drawn('box a 100 60 100 60 frame\nbox b 120 80 40 20 tc\narrow 20,90 b.left')

    def test_check(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            source = os.path.join(folder, 'a.diagram')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(HEAD)
            self.assertEqual(diagrams.main(['--check', source]), 1)
            self.assertIn('run scripts/diagrams', said.getvalue())
            self.assertEqual(diagrams.main([source]), 0)
            self.assertEqual(diagrams.main(['--check', source]), 0)
            with open(source, 'a', encoding='utf-8') as file:
                file.write('text 20 100 | new')
            self.assertEqual(diagrams.main(['--check', source]), 1)


if __name__ == '__main__':
    unittest.main()
