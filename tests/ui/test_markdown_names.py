"""No name reaches Streamlit's Markdown as it is: what pages hand to Streamlit is text of the program, numbers, or has
been through `escape_markdown`. Read from the source, so that texts which no test brings on a page are seen, too."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path

import annotator.ui

UI = Path(annotator.ui.__file__).parent
# Positions of the arguments that Streamlit reads as Markdown, besides `help`, `label`, `text` and `captions`.
FIRST = {
    "badge", "button", "caption", "checkbox", "color_picker", "date_input", "dialog", "download_button", "error",
    "expander", "file_uploader", "form_submit_button", "header", "info", "link_button", "markdown", "menu_button",
    "multiselect", "number_input", "pills", "popover", "radio", "segmented_control", "select_slider", "selectbox",
    "slider", "spinner", "status", "subheader", "success", "tabs", "text_area", "text_input", "time_input", "title",
    "toast", "toggle", "warning", "write", "draw_download_button",
}  # fmt: skip
PLACES = dict.fromkeys(FIRST, (0,)) | {"metric": (0, 1, 2), "progress": (1,), "page_link": (), "draw_page_link": (1,)}
NAMED = ("help", "label", "text", "captions")
# Their options are Markdown; those of selectbox and multiselect are not.
WITH_OPTIONS = {"radio": 1, "segmented_control": 1, "pills": 1, "select_slider": 1}
# also of what holds several names, in lines
ESCAPES = {"escape_markdown", "escape_for_screen_reader"}
NOT_STREAMLIT = {"log", "logging", "sys.stdout", "sys.stderr", "file", "process.stdin", "self._file", "data_card"}
# Functions whose text is the program's own: numbers and words, whatever they are given.
IN_WORDS = {
    "describe_share", "format_count", "format_duration", "format_exact_duration", "format_percent",
    "format_search_time", "format_size", "guarantee.format_precision", "int", "len", "max", "min", "round", "sum",
}  # fmt: skip
NUMBER = re.compile(r"[,+\d.]*[dfg%,]|\+?,?d?")
OPTION_TABLE = "texts of export_options.OPTIONS, and counts"
NUMBERS, CALLERS, PROGRAM = (
    "figures only",
    "its callers are in this file and give constants",
    "in the program or a plug-in",
)
ELSEWHERE = "its callers are looked at: draw_download_button and draw_page_link are in PLACES"
# (file, expression): why it holds no name as it is.
FACTS = "words of the table FACT_FIELDS"
KNOWN = {
    ("serving/early_server.py", "content"): "the bytes of a response, which no Streamlit page shows",
    (
        "shared/data_card_section.py",
        "_HEADING_PATTERN.sub('###', data_card.format_markdown(facts, _escape_one_line))",
    ): "_escape_one_line escapes the names in it",
    (
        "pages/export/choices_section.py",
        "[_describe_format(format_) for format_ in formats.values()]",
    ): "_describe_format escapes",
    (
        "home/folder_scan.py",
        "f'{name} cannot be read as it is:'",
    ): "an error of the start page, which is no Streamlit page",
    ("shared/page_access.py", "label"): ELSEWHERE,
    ("shared/page_access.py", "help"): ELSEWHERE,
    ("shared/page_access.py", "other.title"): "titles of navigation.PAGES",
    (
        "pages/settings/networks_section.py",
        "escape_markdown(licenses.get_license(row.licence).sentence) + link",
    ): PROGRAM,
    ("pages/agreement/agreement_page.py", "_format_percent(overall.raw)"): NUMBERS,
    ("pages/agreement/agreement_page.py", "_format_percent_interval(overall.raw)"): NUMBERS,
    ("pages/certificate/auto_accept_card.py", "guarantee.format_precision"): NUMBERS,
    ("pages/certificate/certificate_page.py", "label"): CALLERS,
    ("pages/certificate/certificate_page.py", "help_"): CALLERS,
    ("pages/certificate/certificate_page.py", "format_interval(interval)"): NUMBERS,
    ("shared/class_form.py", "title"): "its callers give constants",
    ("pages/export/croissant_section.py", "title"): FACTS,
    ("pages/export/croissant_section.py", "field.label"): FACTS,
    ("pages/export/croissant_section.py", "field.about"): FACTS,
    ("pages/export/croissant_section.py", "f'{field.about}, one per line'"): FACTS,
    (
        "shared/class_form.py",
        "f'Add {_format_class_count(apart)}: {escape_markdown(_format_names([name for name, _ in apart]))}'",
    ): "a number, and names that are escaped",
    (
        "shared/class_form.py",
        "f'Add {_format_class_count(pending)}, {escape_markdown(one)}'",
    ): "a number, and names that are escaped",
    ("shared/class_form.py", "text"): "its callers give constants",
    ("pages/export/choices_section.py", "section"): OPTION_TABLE,
    ("pages/export/choices_section.py", "widget.label"): OPTION_TABLE,
    ("pages/export/choices_section.py", "widget.help or None"): OPTION_TABLE,
    ("pages/export/choices_section.py", "_format_label(page, widget)"): OPTION_TABLE,
    ("pages/imports/imports_page.py", "title"): CALLERS,
    ("pages/people.py", "_format_seconds(person)"): NUMBERS,
    ("pages/people.py", "_format_percent(person.same)"): NUMBERS,
    ("pages/people.py", "_format_interval(person.same)"): NUMBERS,
    ("pages/people.py", "person.changes_description"): NUMBERS,
    ("pages/people.py", "between"): NUMBERS,
    ("pages/progress/progress_page.py", "f'#### {title}'"): CALLERS,
    ("pages/progress/progress_page.py", "label"): CALLERS,
    ("pages/progress/progress_page.py", "value"): NUMBERS,
    ("pages/progress/progress_page.py", "METRIC_HELP.get(label)"): CALLERS,
    (
        "pages/settings/settings_page.py",
        "f'{order.about} [{order.paper}]({order.url})' if order.url else order.about",
    ): PROGRAM,
    (
        "pages/settings/settings_page.py",
        "f'{method.assumes} [{configuration.describe_method_source(chosen)}]({method.url})'",
    ): PROGRAM,
}


def written() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(UI.rglob("*.py")):
        if path.parent.name == "entry":  # a script that draws a page when it is loaded; it has no text of its own
            continue
        yield path, ast.parse(path.read_text(encoding="utf-8"))


class Texts:
    """What an expression in a module can be, as far as its source says."""

    def __init__(self, path: Path, tree: ast.Module):
        self.path = path
        self.module = import_module(".".join(("annotator.ui", *path.relative_to(UI).with_suffix("").parts)))
        self.functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda)]

    def is_own(self, node: ast.expr | None, scope: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether this expression is text of the program, numbers, or escaped."""

        def own(*nodes: ast.expr | None) -> bool:
            return all(self.is_own(one, scope, seen) for one in nodes)

        match node:
            case None | ast.Constant():
                return True
            case ast.JoinedStr(values=values):
                return own(*values)
            case ast.FormattedValue(value=value, format_spec=spec):
                return _is_number(spec) or own(value)
            case ast.IfExp(body=body, orelse=orelse):
                return own(body, orelse)
            case ast.BoolOp(values=values) | ast.Tuple(elts=values) | ast.List(elts=values):
                return own(*values)
            case ast.BinOp(left=left, right=right):
                return own(left, right)
            case ast.Starred(value=value) | ast.NamedExpr(value=value):
                return own(value)
            case ast.GeneratorExp(elt=value) | ast.ListComp(elt=value):
                return own(value) or self._over_own(node, scope, seen)
            case ast.Subscript(value=value) | ast.Attribute(value=value, attr="__getitem__" | "format" | "get"):
                return own(value)
            case ast.Lambda(body=body):
                return self.is_own(body, node, seen)
            case ast.Call(func=func, args=args):
                name = ast.unparse(func)
                if name in ESCAPES | IN_WORDS:
                    return True
                if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Constant | ast.JoinedStr | ast.Name):
                    return own(func.value, *args, *(one.value for one in node.keywords))
                return name in ("list", "sorted") and own(*args)
            case ast.Name(id=name):
                return name in seen | ESCAPES or self._is_constant(name) or self._assigned(name, scope, seen)
        return ast.unparse(node) in ESCAPES

    def _over_own(self, node: ast.GeneratorExp | ast.ListComp, scope: ast.AST, seen: frozenset[str]) -> bool:
        return False

    def _is_constant(self, name: str) -> bool:
        """Whether it is a constant of the program: written in capitals, of texts and numbers."""
        value = getattr(self.module, name, None)
        return name.isupper() and isinstance(value, str | int | float | Mapping | Iterable)

    def _assigned(self, name: str, scope: ast.AST, seen: frozenset[str]) -> bool:
        """Whether all that is ever assigned to a local name is the program's own."""
        given: list[ast.expr | None] = []
        for node in ast.walk(scope):
            match node:
                case ast.Assign(targets=targets, value=value):
                    given += [one for target in targets for one in _part(target, name, value)]
                case (
                    ast.AnnAssign(target=ast.Name(id=known), value=value)
                    | ast.AugAssign(target=ast.Name(id=known), value=value)
                    | ast.NamedExpr(target=ast.Name(id=known), value=value)
                ) if known == name:
                    given.append(value)
                case ast.For(target=target, iter=ast.Tuple(elts=values) | ast.List(elts=values)):
                    given += [one for value in values for one in _part(target, name, value)]
                case ast.For(target=ast.Name(id=known), iter=ast.Name(id=of)) if known == name:
                    given.append(ast.Name(id=of))
        return bool(given) and all(self.is_own(one, scope, seen | {name}) for one in given)


def _part(target: ast.expr, name: str, value: ast.expr) -> list[ast.expr]:
    """The expression that `name` gets when `value` is assigned to `target`."""
    if isinstance(target, ast.Name) and target.id == name:
        return [value]
    if isinstance(target, ast.Tuple):
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            return [
                one for part, given in zip(target.elts, value.elts, strict=True) for one in _part(part, name, given)
            ]
        if isinstance(value, ast.IfExp):
            return [*_part(target, name, value.body), *_part(target, name, value.orelse)]
        if any(isinstance(one, ast.Name) and one.id == name for one in target.elts):
            return [value]
    return []


def _is_number(spec: ast.expr | None) -> bool:
    """Whether a format is one that only numbers have."""
    if not isinstance(spec, ast.JoinedStr) or not spec.values:
        return False
    text = "".join(str(one.value) if isinstance(one, ast.Constant) else "0" for one in spec.values)
    return bool(NUMBER.fullmatch(text))


def handed_over(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The expressions that Streamlit reads as Markdown."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        func = node.func.body if isinstance(node.func, ast.IfExp) else node.func  # (st.info if ... else st.warning)()
        called = func.attr if isinstance(func, ast.Attribute) else ast.unparse(func)
        if called not in PLACES:
            continue
        if isinstance(func, ast.Attribute) and ast.unparse(func.value) in NOT_STREAMLIT:
            continue
        named = {one.arg: one.value for one in node.keywords}
        yield from ((node, node.args[place]) for place in PLACES[called] if place < len(node.args))
        yield from ((node, named[name]) for name in NAMED if name in named)
        if called in WITH_OPTIONS:
            yield node, named.get("format_func") or named.get("options") or node.args[WITH_OPTIONS[called]]


def scope_of(texts: Texts, node: ast.AST, tree: ast.Module) -> ast.AST:
    """The innermost function around a node."""
    around = [one for one in texts.functions if any(inner is node for inner in ast.walk(one))]
    return min(around, key=lambda one: sum(1 for _ in ast.walk(one)), default=tree)


def test_every_markdown_text_of_a_page_is_constant_or_escaped():
    raw, used = [], set()
    for path, tree in written():
        texts = Texts(path, tree)
        for call, text in handed_over(tree):
            if texts.is_own(text, scope_of(texts, call, tree)):
                continue
            key = (str(path.relative_to(UI)), ast.unparse(text))
            used.add(key)
            if key not in KNOWN:
                raw.append(f"{key[0]}:{call.lineno}: {ast.unparse(call.func)}({key[1]})")
    assert not raw, "\n".join(["Escape the names in it (escape_markdown), or say in KNOWN why there are none:", *raw])
    assert used >= set(KNOWN), f"KNOWN names what is not there any more: {set(KNOWN) - used}"
