"""Tests of the check of links in documents."""

import unittest

import links


def found(documents, files=()):
    return links.check(documents, lambda path: path in documents or path in files)


class LinksTest(unittest.TestCase):
    def test_anchor_is_the_slug_of_its_heading(self):
        self.assertEqual(links.slug('Status values (`deut status`)'), 'status-values-deut-status')
        self.assertEqual(links.slug('The read cache (S7)'), 'the-read-cache-s7')
        self.assertEqual(links.slug('R1: writes & [reads](x.md), max_bytes'), 'r1-writes--reads-max_bytes')

    def test_second_heading_of_a_name_is_numbered(self):
        self.assertEqual(links.anchors_of('# A\n## Tests\n## Tests\n```\n# not one\n```\n<a id="x"></a>'), {'a', 'tests', 'tests-1', 'x'})

    def test_links_outside_of_code(self):
        text = '[one](a.md) and ![two](b.png "title")\n`[three](c.md)`\n```\n[four](d.md)\n```\n[five]: e.md\nthe [text of a\nlink](f.md#g) goes on'
        self.assertEqual(list(links.links_of(text)), [(1, 'a.md'), (1, 'b.png'), (6, 'e.md'), (8, 'f.md#g')])

    def test_index_of_an_array_is_no_link(self):
        self.assertEqual(list(links.links_of('ranges are [begin, end) and a[i](later')), [])

    def test_link_to_what_is_there_is_no_finding(self):
        documents = {'README.md': '[a](docs/a.md#part) [b](scripts/b) [self](#top)\n# Top', 'docs/a.md': '# Part\n[up](../README.md#top) [out](https://github.com/y)'}
        self.assertEqual(found(documents, {'scripts/b'}), [])

    def test_link_to_nothing(self):
        self.assertEqual(found({'README.md': 'text\n[a](docs/a.md)'}), ['README.md:2: docs/a.md names nothing: there is no docs/a.md'])

    def test_anchor_of_no_heading(self):
        self.assertEqual(found({'README.md': '[a](#part)\n# Parts'}), ['README.md:1: #part: README.md has no heading #part'])

    def test_link_out_of_the_checkout(self):
        self.assertEqual(found({'a/b.md': '[a](../../c.md)'}), ['a/b.md:1: ../../c.md leads out of the checkout'])

    def test_document_that_nothing_leads_to(self):
        documents = {'README.md': '[a](a.md)', 'a.md': '[b](b.md)', 'b.md': '', 'c.md': '[a](a.md)'}
        self.assertEqual(found(documents), ['c.md:1: no link leads here from README.md; add one to the README of its folder'])


if __name__ == '__main__':
    unittest.main()
