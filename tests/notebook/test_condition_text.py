import linecache
import warnings

from agentbench.workflows.draw.shape import lambda_text

LIMIT = 3


def compiled(source: str, name: str = "<cell-1>", shown: str | None = None):
    """What a notebook does with a cell: its text goes to linecache, the code runs. Returns `f` of it."""
    text = source if shown is None else shown
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names: dict[str, object] = {}
    exec(compile(source, name, "exec"), names)
    return names["f"]


def test_the_text_of_a_lambda_is_its_body_without_its_argument():
    expected = [
        (lambda draft: draft.score < 0.5, "score < 0.5"),
        (lambda draft: draft["score"] < LIMIT, "draft['score'] < LIMIT"),
        (lambda draft: draft.plan.ready and not draft.late, "plan.ready and (not late)"),
        (lambda m: m.text.startswith("x"), "text.startswith('x')"),
        (lambda m: any(part.ok for part in m.parts), "any((part.ok for part in parts))"),
        (lambda: True, "True"),
        (lambda a, b: a.x < b.x, "a.x < b.x"),
    ]
    assert [lambda_text(function) for function, _ in expected] == [text for _, text in expected]


def test_names_from_around_a_lambda_are_in_its_text():
    limit = 5
    assert lambda_text(lambda draft: draft.score > limit) == "score > limit"


def test_two_lambdas_in_a_line_have_their_own_texts():
    low, high = (lambda m: m.score < 1), (lambda m: m.score > 2)
    assert (lambda_text(low), lambda_text(high)) == ("score < 1", "score > 2")


def test_two_lambdas_in_a_line_with_the_same_names_have_no_text():
    first, second = (lambda m: m.a < m.b), (lambda m: m.a > m.b)
    assert lambda_text(first) is lambda_text(second) is None


def test_cells_of_a_notebook_are_sources_too():
    assert lambda_text(compiled("x = 1\nf = lambda m: m.n >= 10\n")) == "n >= 10"


def test_a_cell_that_awaits_at_its_top_is_read():
    shown = "await something()\nf = lambda m: m.n >= 10\n"
    assert lambda_text(compiled("\nf = lambda m: m.n >= 10\n", shown=shown)) == "n >= 10"


def test_a_source_that_differs_from_the_code_gives_no_text():
    for source in ("f = lambda m: m.n >= 11\n", "f = lambda k: k.n >= 10\n", "", "f = (\n", "%magic\n"):
        assert lambda_text(compiled("f = lambda m: m.n >= 10\n", shown=source)) is None


def test_reading_a_source_warns_of_nothing():
    source = "pattern = 'a\\d'\nf = lambda m: m.n is 10\n"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = compiled(source, "<cell-2>")
    assert lambda_text(function) == "n is 10"


def test_other_objects_have_no_text():
    for other in (None, len, 3, test_cells_of_a_notebook_are_sources_too):
        assert lambda_text(other) is None
