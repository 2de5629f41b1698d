import re
from xml.etree import ElementTree

from agentbench.exceptions import RenderFailed
from agentbench.notebook.graph.dot import to_dot
from agentbench.notebook.graph.shape import GraphShape, ShapeEdge, ShapeNode, read_shape
from agentbench.notebook.graph.svg import clean_svg, decorate_svg
from tests.notebook import graphs
from tests.notebook.attacks import ATTACKS
from tests.parts.errors import raises

SVG = "{http://www.w3.org/2000/svg}"

SHAPE = GraphShape(
    name="two",
    nodes=(ShapeNode(id="a", name="a", kinds=("start",), type_name="Step"), ShapeNode(id="b", name="b")),
    edges=(ShapeEdge(source="a", target="b", label="if x"),),
)
RAW = b"""<?xml version="1.0"?><!DOCTYPE svg><!-- made by 1.2.3 -->
<svg width="100pt" height="50pt" viewBox="0 0 100 50" xmlns="http://www.w3.org/2000/svg"
  xmlns:xlink="http://www.w3.org/1999/xlink"><g id="graph0" class="graph">
<g id="n1" class="node ab_node"><title>n1</title><path fill="white" stroke="black" d="M60,10C60,10 90,10 90,30"/>
<text x="75" y="20" font-family="Times">b</text></g>
<g id="n0" class="node ab_node ab_k_start"><title>n0</title>
<ellipse fill="white" stroke="black" cx="20" cy="20" rx="15" ry="10"/><text x="20" y="24">a</text></g>
<g id="e0" class="edge ab_edge"><title>n0-&gt;n1</title><path fill="none" stroke="black" d="M35,20L60,20"/>
<polygon points="60,20 55,18 55,22"/><text x="45" y="18">if x</text></g></g></svg>"""


def decorated(states: dict[str, str] | None, raw: bytes = RAW, text: str = "") -> ElementTree.Element:
    return ElementTree.fromstring(decorate_svg(clean_svg(raw, "test"), SHAPE, states, text=text))


def group(root: ElementTree.Element, element: str) -> ElementTree.Element:
    return next(each for each in root.iter(f"{SVG}g") if each.get("id") == element)


def test_cleaning_keeps_shapes_and_text_and_drops_the_rest():
    hostile = RAW.replace(
        b"</svg>",
        b"<script>1</script><foreignObject/><image href='x'/><style>a{}</style><use href='#n0'/>"
        b"<rect onclick='1' style='x:y' fill='url(http://x/)' stroke='red' width='1'/></svg>",
    )
    text = clean_svg(hostile, "test").decode()
    for gone in (
        "script",
        "foreign",
        "image",
        "<style",
        "use",
        "onclick",
        "style=",
        "url(",
        "javascript",
        "<!",
        "<?",
        "1.2.3",
    ):
        assert gone not in text
    assert '<rect stroke="red" width="1"' in text


def test_links_are_replaced_by_their_content():
    linked = RAW.replace(b"<ellipse", b'<a xlink:href="javascript:1"><ellipse').replace(b"a</text>", b"a</text></a>")
    assert clean_svg(linked, "test") == clean_svg(RAW, "test")


def test_what_is_no_svg_is_refused():
    for data in [b"", b"hello", b"<html/>", b"<svg", b"\xff\xfe"]:
        with raises(RenderFailed, "'test'", "SVG"):
            clean_svg(data, "test")


def test_entities_are_refused():
    with raises(RenderFailed, "declares entities"):
        clean_svg(b'<!DOCTYPE svg [<!ENTITY a "x">]><svg>&a;</svg>', "test")


def test_a_picture_on_its_own_has_a_name_a_text_a_style_and_a_ground():
    root = decorated({}, text="a -> b")
    assert root.get("role") == "img"
    title, description, style, ground = root[:4]
    assert root.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert (title.text, description.text) == ("Graph of two", "a -> b")
    assert style.text is not None
    assert "prefers-color-scheme:dark" in style.text
    assert ground.get("class") == "ab_ground"


def test_rings_go_around_the_outermost_outline():
    lid = RAW.replace(
        b'<ellipse fill="white" stroke="black" cx="20" cy="20" rx="15" ry="10"/>',
        b'<path fill="white" d="M5,10L35,10L35,30L5,30Z"/><path fill="none" d="M5,10C15,12 25,12 35,10"/>',
    )
    double = RAW.replace(
        b'<ellipse fill="white" stroke="black" cx="20" cy="20" rx="15" ry="10"/>',
        b'<ellipse fill="white" cx="20" cy="20" rx="11" ry="6"/><ellipse cx="20" cy="20" rx="15" ry="10"/>',
    )
    for raw, expected in ((lid, ["ab_shape ab_outer", "ab_line"]), (double, ["ab_shape", "ab_line ab_outer"])):
        root = decorated(None, raw)
        outlines = [each for each in group(root, "n0") if each.tag in (f"{SVG}path", f"{SVG}ellipse")]
        assert [each.get("class") for each in outlines] == expected
        halo = next(each for each in group(decorated({"n0": "waiting"}, raw), "n0") if each.get("class") == "ab_halo")
        outer = outlines[expected.index(next(each for each in expected if "outer" in each))]
        assert (halo.get("d"), halo.get("rx")) == (outer.get("d"), outer.get("rx"))


# ---- dot

ATTRIBUTE = r'(\w+)=("(?:[^"\\]|\\.)*"|[^\s"\]]+)'
STATEMENT = re.compile(rf"^\s*(n\d+(?: -> n\d+)?) \[((?:{ATTRIBUTE}\s*)*)\]$", re.MULTILINE)


def statements(dot: str) -> dict[str, dict[str, str]]:
    """Attributes of the nodes and edges of a DOT text, by their ids."""
    found = [dict(re.findall(ATTRIBUTE, match[2])) for match in STATEMENT.finditer(dot)]
    return {each["id"]: {key: value.strip('"') for key, value in each.items()} for each in found}


def test_names_are_positions_and_text_is_in_labels_only():
    found = statements(to_dot(read_shape(graphs.research())))
    assert list(found) == ["n0", "n1", "n2", "n3", "n4", "e0", "e1", "e2", "e3", "e4"]
    assert [node["label"] for node in list(found.values())[:5]] == ["▷ plan", "search", "draft", "‖ review", "publish"]
    assert found["e2"]["label"].strip() == "if needs_review"


def test_kinds_are_shapes_and_classes():
    nodes = statements(to_dot(read_shape(graphs.research())))
    assert nodes["n0"]["shape"] == "ellipse"
    assert "shape" not in nodes["n1"]
    assert nodes["n3"]["shape"] == "hexagon"
    assert nodes["n4"]["peripheries"] == "2"
    assert nodes["n3"]["class"] == "ab_node ab_k_hitl"
    assert statements(to_dot(read_shape(graphs.nested())))["n1"]["shape"] == "cylinder"


def test_frames_are_clusters_and_edges_end_at_them():
    dot = to_dot(read_shape(graphs.nested(), expand=True))
    assert re.findall(r"subgraph (\w+)", dot) == ["cluster_c0", "cluster_c1"]
    assert sorted(re.findall(r"lhead=(\w+)", dot)) == ["cluster_c0", "cluster_c1"]
    assert "compound=true" in dot


def test_no_name_breaks_out_of_its_label():
    for attack in ATTACKS:
        nodes = (ShapeNode(id=attack, name=attack, type_name=attack), ShapeNode(id="other", name="other"))
        edges = (ShapeEdge(source=attack, target="other", kind="conditional", label=attack),)
        found = statements(to_dot(GraphShape(name=attack, nodes=nodes, edges=edges)))
        assert list(found) == ["n0", "n1", "e0"]
        assert set(found["n0"]) == {"id", "class", "label"}
        assert set(found["e0"]) <= {"id", "class", "label", "style"}
