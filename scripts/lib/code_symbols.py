"""Finds the definition of a C++ function by its name, without a compiler: enough of the grammar for this repository's style.

`definitions(text)` answers {qualified name: [text of each definition]} for functions (members by `Class::Member`; namespaces are left out)
and classes; `fingerprints(text)` a hash for each name, of all its definitions, that changes with the code and not with comments, white space or
DEUT_POINT.
"""
import hashlib
import re

_TOKEN = re.compile(
    r'''R"(?P<delim>[^\s()\\]{0,16})\(.*?\)(?P=delim)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'(?![A-Za-z0-9])''', re.S)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.M)
_LABEL = re.compile(r'^\s*(?:public|private|protected)\s*:(?!:)')
_CLASS = re.compile(r'^\s*(?:class|struct|union)\b(?P<rest>[^=]*)$', re.S)
_CLASS_NAME = re.compile(r'(?:alignas\s*\((?:[^()]|\([^()]*\))*\)|\[\[[^\]]*\]\]|\s)*(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)?')
_FUNCTION_NAME = re.compile(r'((?:[A-Za-z_]\w*(?:<[^<>]*>)?\s*::\s*)*(?:operator\s*(?:\(\s*\)|[^\s\w(]+|[\w: ]+)|~?[A-Za-z_]\w*))\s*$')
_NO_FUNCTION = {'alignas', 'decltype', 'noexcept', 'requires', 'sizeof', 'explicit', '__attribute__', 'static_assert', 'if', 'defined'}


def without_comments(text):
    """The text with comments and preprocessor lines blank, of the same length; and the same with literals blank as well."""
    code, mask = list(text), list(text)

    def blank(where, begin, end):
        for i in range(begin, end):
            if where[i] != '\n':
                where[i] = ' '

    for match in _TOKEN.finditer(text):
        comment = match.group().startswith('//') or match.group().startswith('/*')
        if comment:
            blank(code, *match.span())
        blank(mask, *match.span())
    for match in _DIRECTIVE.finditer(''.join(mask)):
        blank(code, *match.span())
        blank(mask, *match.span())
    return ''.join(code), ''.join(mask)


def _close(mask, at):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(mask)):
        if mask[i] in '({[':
            depth += 1
        elif mask[i] in ')}]':
            depth -= 1
            if depth == 0:
                return i + 1
    return len(mask)


def _strip_template(header):
    match = re.match(r'\s*template\s*<', header)
    if not match:
        return header
    depth = 0
    for i in range(match.end() - 1, len(header)):
        depth += {'<': 1, '>': -1}.get(header[i], 0)
        if depth == 0:
            return _strip_template(header[i + 1:])
    return header


def _function_name(header):
    """The name before the parameter list of a function's header, or None; and where the list begins."""
    i = 0
    while i < len(header):
        if header[i] == '(':
            match = _FUNCTION_NAME.search(header[:i])
            if match and match.group(1).split('::')[-1].strip() not in _NO_FUNCTION:
                name = match.group(1)
                if name.rstrip().endswith('operator') and header[i:].startswith('()'):
                    return name + '()', i + 2
                return re.sub(r'<[^<>]*>|\s', '', name), i
            i = _close(header, i)
        elif header[i] == '=' and header[max(0, i - 8):i].strip() != 'operator' and header[i - 1:i] not in '=!<>':
            return None, i
        else:
            i += 1
    return None, len(header)


def _is_member_initialiser(header):
    """True if the brace behind this constructor's header initialises a member and is not the body."""
    name, at = _function_name(header)
    if name is None or not re.search(r'[\w>]\s*$', header):
        return False
    tail = re.sub(r'::', '  ', header[_close(header, at):])
    return ':' in tail


def definitions(text):
    code, mask = without_comments(text)
    found = {}
    scopes = []  # (name or None, where it opened)
    begin = i = 0
    while i < len(mask):
        char = mask[i]
        if char == ';':
            begin = i + 1
        elif char in '([':
            i = _close(mask, i)
            continue
        elif char == '}':
            if scopes:
                name, opened = scopes.pop()
                if name is not None:
                    full = '::'.join([s for s, _ in scopes if s] + [name])
                    found.setdefault(full, []).append(code[opened:i + 1])
            begin = i + 1
        elif char == '{':
            header = mask[begin:i]
            while _LABEL.match(header):
                begin += _LABEL.match(header).end()
                header = mask[begin:i]
            plain = _strip_template(header)
            as_class = _CLASS.match(plain)
            rest = as_class and re.sub(r'alignas\s*\((?:[^()]|\([^()]*\))*\)', '', as_class.group('rest'))
            if re.match(r'\s*(?:inline\s+)?namespace\b', plain) or plain.strip() == 'extern':
                scopes.append((None, begin))
                begin = i + 1
            elif as_class and '(' not in re.sub(r'(?<!:):(?!:).*', '', rest, flags=re.S):
                head = re.sub(r'(?<!:):(?!:).*', '', rest, flags=re.S)
                head = re.sub(r'\bfinal\b', '', head)
                scopes.append((_CLASS_NAME.match(head).group('name'), begin))
                begin = i + 1
            else:
                name, _ = _function_name(plain)
                end = _close(mask, i)
                if name is None or _is_member_initialiser(plain):
                    i = end  # a variable's or member's initialiser, an enum; what follows belongs to the same statement
                    if re.match(r'\s*enum\b', plain):
                        begin = i
                    continue
                full = '::'.join([s for s, _ in scopes if s] + [name])
                found.setdefault(full, []).append(code[begin:end])
                begin = i = end
                continue
        i += 1
    return found


def fingerprints(text):
    """{qualified name: fingerprint} of all that the text defines."""
    found = {}
    for symbol, bodies in definitions(text).items():
        normal = '\n'.join(re.sub(r'\s+', '', re.sub(r'DEUT_POINT\("[^"]*"\);', '', body)) for body in bodies)
        found[symbol] = hashlib.sha256(normal.encode()).hexdigest()[:16]
    return found
