#!/usr/bin/env python3
"""Draws diagrams: FILE.diagram becomes FILE.svg beside it.

Usage: diagrams.py [--check] [FILE.diagram...]   (default: all of the checkout)
  --check  draws nothing, and fails if an SVG is not what its source draws now

A source has one element a line. Places are in pixels, (0, 0) is top left. Lines that begin with # are comments.

  title | TEXT                                the heading
  size WIDTH HEIGHT
  sources PATH...                             files of the checkout that state what the figure shows; they must exist
  box NAME X Y WIDTH HEIGHT STYLE | TEXT...   a rectangle with lines of text; STYLE is a word of STYLES
  text X Y [WORD...] | TEXT...                lines of text; the first one's baseline is at Y; WORDs: middle, end
  arrow POINT POINT... [WORD...] | LABEL...   an arrow over the points; WORDs: dashed, both (heads), plain (no head), thin (plain,
                                              grey, behind everything), over (it may cross other arrows)

A POINT is X,Y or NAME.SIDE or NAME.SIDE+N or NAME.SIDE-N: N pixels from the middle of that side of a box (SIDE: left, right, top,
bottom). "| TEXT" may be repeated, once for each line. A text that begins with * is bold, one with ~ small and grey.

A figure is refused if it has a fault that a reader would see: text that does not fit into its box, or lies over a line or another text,
or beyond the edge; an arrow through a box or over another arrow.
"""

import os
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INK, GREY, PAPER = '#1f2328', '#59636e', '#ffffff'
# Fill, border, and where the text is: in the middle, or at the top left. Arrows may cross a frame. A span is a part of a line.
STYLES = {
    'client': ('#f1e8fb', '#8250df', ''), 'tc': ('#ddeeff', '#0a63c9', ''), 'dc': ('#dff5e3', '#1a7f37', ''),
    'file': ('#fff3cd', '#9a6700', ''), 'plain': ('#ffffff', '#59636e', ''), 'dead': ('#eceff2', '#8c959f', ''),
    'tcleft': ('#ddeeff', '#0a63c9', 'left'), 'dcleft': ('#dff5e3', '#1a7f37', 'left'),
    'tcframe': ('#f5faff', '#0a63c9', 'frame'), 'dcframe': ('#f4fcf6', '#1a7f37', 'frame'), 'frame': ('#fafbfc', '#8c959f', 'frame'),
    'tcspan': ('#ddeeff', 'none', ''), 'dcspan': ('#dff5e3', 'none', ''), 'badspan': ('#ffe6e3', 'none', ''), 'span': ('#eceff2', 'none', ''),
}
NORMAL, SMALL, HEADING, LINE = 14, 13, 18, 18
# Widths of Arial's letters, in thousandths of its size; others have 556.
WIDTHS = {c: w for w, letters in ((222, "ijl'"), (278, ' ./,:;!ftI\\[]|'), (333, '-()r'), (500, 'ckvxyzsJ'), (584, '+<>=~'),
                                 (667, 'ABEKPSVXY&'), (722, 'CDHNRUw'), (778, 'GOQ'), (833, 'mM'), (944, 'W'))
          for c in letters}
SAFETY = 1.05  # a reader's font may be wider
NEARLY = 12    # pixels by which a slanting line has to slant


class Fault(Exception):
    pass


class Text:
    """One line of text, and the rectangle that it takes."""

    def __init__(self, text, x, y, anchor, size=NORMAL):
        self.style = {'*': 'bold', '~': 'small'}.get(text[:1], '')
        self.text = text[1:] if self.style else text
        self.x, self.y, self.anchor = x, y, anchor
        self.size = SMALL if self.style == 'small' else size
        self.width = sum(WIDTHS.get(c, 556) for c in self.text) * self.size / 1000 * SAFETY * (1.07 if self.style == 'bold' else 1)

    def area(self):
        left = self.x - {'start': 0, 'middle': self.width / 2, 'end': self.width}[self.anchor]
        return left, self.y - 0.75 * self.size, left + self.width, self.y + 0.22 * self.size

    def svg(self):
        extra = ' font-weight="bold"' if self.style == 'bold' else ''
        colour = GREY if self.style == 'small' else INK
        return (f'<text x="{self.x:g}" y="{self.y:g}" font-size="{self.size}" text-anchor="{self.anchor}" fill="{colour}"{extra}>'
                f'{escape(self.text)}</text>')


class Box:
    def __init__(self, name, x, y, width, height, style, lines):
        if style not in STYLES:
            raise Fault(f'{name}: no style {style}')
        self.name, self.style = name, style
        self.fill, self.border, self.kind = STYLES[style]
        self.x, self.y, self.width, self.height = x, y, width, height
        if self.kind:
            self.texts = [Text(line, x + 8, y + 18 + LINE * i, 'start') for i, line in enumerate(lines)]
        else:
            first = y + height / 2 - LINE * (len(lines) - 1) / 2 + 5
            self.texts = [Text(line, x + width / 2, first + LINE * i, 'middle') for i, line in enumerate(lines)]

    def area(self):
        return self.x, self.y, self.x + self.width, self.y + self.height

    def edges(self):
        if self.border == 'none':
            return []
        a, b, c, d = self.area()
        return [((a, b), (c, b)), ((c, b), (c, d)), ((a, d), (c, d)), ((a, b), (a, d))]

    def point(self, side, offset):
        middle = (self.x + self.width / 2 + offset, self.y + self.height / 2 + offset)
        return {'left': (self.x, middle[1]), 'right': (self.x + self.width, middle[1]), 'top': (middle[0], self.y),
                'bottom': (middle[0], self.y + self.height)}[side]

    def svg(self):
        radius = 0 if self.border == 'none' else 4
        dash = ' stroke-dasharray="5 3"' if self.style == 'frame' else ''
        return (f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}" rx="{radius}" fill="{self.fill}" '
                f'stroke="{self.border}"{dash}/>')


class Arrow:
    def __init__(self, points, words, lines):
        self.points, self.words = points, words
        self.segments = list(zip(points, points[1:]))
        self.plain = bool(words & {'plain', 'thin'})
        (x, y), (u, v) = max(self.segments, key=lambda s: abs(s[0][0] - s[1][0]) + abs(s[0][1] - s[1][1]))
        x, y = (x + u) / 2, (y + v) / 2
        if abs(v - y) > abs(u - x):  # steep: the label is beside it
            self.texts = [Text(line, x + 7, y + 5 + LINE * (i - (len(lines) - 1) / 2), 'start') for i, line in enumerate(lines)]
        else:
            first = y - 6 - LINE * (len(lines) - 1)
            self.texts = [Text(line, x, first + LINE * i, 'middle') for i, line in enumerate(lines)]

    def svg(self):
        line = ' '.join(f'{x:g},{y:g}' for x, y in self.points)
        dash = ' stroke-dasharray="5 4"' if 'dashed' in self.words else ''
        head = '' if self.plain else ' marker-end="url(#head)"'
        tail = ' marker-start="url(#head)"' if 'both' in self.words else ''
        colour, width = ('#afb8c1', 1) if 'thin' in self.words else (INK, 1.4)
        return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}{head}{tail}/>'


def crosses(segment, area, shrink):
    """Whether the segment has a point inside of the rectangle, which is made smaller by `shrink` on each side."""
    (x, y), (u, v) = segment
    left, top, right, bottom = area[0] + shrink, area[1] + shrink, area[2] - shrink, area[3] - shrink
    begin, end = 0.0, 1.0
    for start, step, low, high in ((x, u - x, left, right), (y, v - y, top, bottom)):
        if step == 0:
            if not low < start < high:
                return False
            continue
        first, last = sorted(((low - start) / step, (high - start) / step))
        begin, end = max(begin, first), min(end, last)
    return begin < end


def meet(one, other):
    """Whether two segments cross at a point that is inside of both."""
    def side(a, b, c):
        return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    (a, b), (c, d) = one, other
    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


class Figure:
    def __init__(self, source, exists=lambda path: os.path.exists(os.path.join(ROOT, path))):
        self.title, self.width, self.height, self.sources = '', 0, 0, []
        self.boxes, self.arrows, self.free = {}, [], []
        for number, line in enumerate(source.splitlines(), 1):
            if line.strip() and not line.startswith('#'):
                head, *texts = [part.strip() for part in line.split(' |')]
                try:
                    self.add(head.split(), texts)
                except (ValueError, IndexError, KeyError) as error:
                    raise Fault(f'line {number}: {line.strip()}: {error}') from error
        if not (self.title and self.width and self.sources):
            raise Fault('title, size or sources are missing')
        gone = [path for path in self.sources if not exists(path)]
        if gone:
            raise Fault(f'sources that do not exist: {" ".join(gone)}')
        self.check()

    def add(self, words, texts):
        kind = words[0]
        if kind == 'title':
            self.title = texts[0]
            self.free.append(Text('*' + self.title, 16, 28, 'start', HEADING))
        elif kind == 'size':
            self.width, self.height = int(words[1]), int(words[2])
        elif kind == 'sources':
            self.sources += words[1:]
        elif kind == 'box':
            name, *numbers = words[1:6]
            if name in self.boxes:
                raise ValueError('two boxes have this name')
            self.boxes[name] = Box(name, *map(float, numbers), words[6], texts)
        elif kind == 'text':
            anchor = words[3] if len(words) > 3 else 'start'
            self.free += [Text(text, float(words[1]), float(words[2]) + LINE * i, anchor) for i, text in enumerate(texts)]
        elif kind == 'arrow':
            points = [self.point(word) for word in words[1:] if ',' in word or '.' in word]
            self.arrows.append(Arrow(points, {word for word in words[1:] if ',' not in word and '.' not in word}, texts))
        else:
            raise ValueError('no such element')

    def point(self, word):
        if ',' in word:
            x, y = word.split(',')
            return float(x), float(y)
        name, side = word.split('.')
        for sign in '+-':
            if sign in side:
                side, offset = side.split(sign)
                return self.boxes[name].point(side, float(sign + offset))
        return self.boxes[name].point(side, 0)

    def texts(self):
        return self.free + [t for item in [*self.boxes.values(), *self.arrows] for t in item.texts]

    def check(self):
        faults, texts = [], self.texts()
        for box in self.boxes.values():
            left, top, right, bottom = box.area()
            for text in box.texts:
                a, b, c, d = text.area()
                if a < left + 4 or c > right - 4 or b < top + 1 or d > bottom - 1:
                    faults.append(f'"{text.text}" does not fit into {box.name}: {text.width:.0f} pixels')
        lines = [(edge, box.name) for box in self.boxes.values() for edge in box.edges()]
        lines += [(segment, 'an arrow') for arrow in self.arrows if 'thin' not in arrow.words for segment in arrow.segments]
        thin = [segment for arrow in self.arrows if 'thin' in arrow.words for segment in arrow.segments]
        covered = {text for box in self.boxes.values() if box.fill != 'none' for text in box.texts}  # such a box hides thin lines
        for i, text in enumerate(texts):
            a, b, c, d = text.area()
            if a < 4 or b < 4 or c > self.width - 4 or d > self.height - 4:
                faults.append(f'"{text.text}" is beyond the edge')
            faults += [f'"{text.text}" lies over {name}' for line, name in lines if crosses(line, text.area(), 0.5)]
            if text not in covered and any(crosses(line, text.area(), 0.5) for line in thin):
                faults.append(f'"{text.text}" lies over a thin line')
            for other in texts[i + 1:]:
                e, f, g, h = other.area()
                if a < g and e < c and b < h and f < d:
                    faults.append(f'"{text.text}" lies over "{other.text}"')
        solid = [box for box in self.boxes.values() if box.kind != 'frame' and box.border != 'none']
        for i, arrow in enumerate(self.arrows):
            for segment in arrow.segments:
                if 'thin' in arrow.words:
                    continue
                if 0 < min(abs(segment[0][0] - segment[1][0]), abs(segment[0][1] - segment[1][1])) < NEARLY:
                    faults.append(f'the arrow from {segment[0]} to {segment[1]} is nearly straight')
                faults += [f'the arrow from {segment[0]} to {segment[1]} goes through {box.name}' for box in solid
                           if crosses(segment, box.area(), 2)]
                for other in self.arrows[i + 1:]:
                    if not {'over', 'thin'} & (arrow.words | other.words) and any(meet(segment, s) for s in other.segments):
                        faults.append(f'two arrows cross, one of them from {segment[0]} to {segment[1]}')
        if faults:
            raise Fault('\n  '.join(dict.fromkeys(faults)))

    def svg(self):
        items = [*[arrow for arrow in self.arrows if 'thin' in arrow.words], *self.boxes.values(),
                 *[arrow for arrow in self.arrows if 'thin' not in arrow.words], *self.texts()]
        return '\n'.join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            'font-family="Arial, Helvetica, Liberation Sans, sans-serif" role="img">',
            '<!-- Drawn by scripts/diagrams from the .diagram file of this name. -->',
            f'<title>{escape(self.title)}</title>',
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" '
            f'orient="auto-start-reverse"><path d="M0,0 L10,5 L0,10 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" rx="6" fill="{PAPER}"/>',
            *[item.svg() for item in items], '</svg>', ''])


def listed(pattern, *others):
    """The files of the checkout whose names match: those that git has, and with options for `others` more."""
    names = subprocess.run(['git', 'ls-files', '--cached', *others, '--', pattern], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split()
    return [path for path in (os.path.join(ROOT, name) for name in sorted(set(names))) if os.path.exists(path)]


def main(arguments):
    check = '--check' in arguments
    paths = [a for a in arguments if a != '--check'] or listed('*.diagram', '--others', '--exclude-standard')
    failed = False
    if check:
        for path in listed('*.svg'):
            if not os.path.exists(path.removesuffix('.svg') + '.diagram'):
                print(f'{os.path.relpath(path, ROOT)}: it has no source of the name with .diagram')
                failed = True
    for path in paths:
        name, target = os.path.relpath(path, ROOT), path.removesuffix('.diagram') + '.svg'
        try:
            with open(path, encoding='utf-8') as file:
                drawn = Figure(file.read()).svg()
        except Fault as fault:
            print(f'{name}: {fault}')
            failed = True
            continue
        there = ''
        if os.path.exists(target):
            with open(target, encoding='utf-8') as file:
                there = file.read()
        if there == drawn:
            continue
        if check:
            print(f'{name}: its SVG is not what it draws now; run scripts/diagrams')
            failed = True
        else:
            with open(target, 'w', encoding='utf-8') as file:
                file.write(drawn)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
