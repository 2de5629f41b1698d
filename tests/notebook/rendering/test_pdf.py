"""PDFs of graphs show the same picture as PNGs, and need no Graphviz."""

from agentbench.notebook import draw
from tests.notebook import graphs


def test_a_pdf_is_one_page_of_the_size_of_the_picture(tmp_path):
    view = draw(graphs.research(), run={"plan": "failed"}, renderer="builtin")
    data = view.save(tmp_path / "graph.pdf").read_bytes()
    width, height = (float(view.svg.partition(f'{side}="')[2].partition('"')[0]) for side in ("width", "height"))
    box = data.partition(b"/MediaBox [")[2].partition(b"]")[0].split()
    assert data.startswith(b"%PDF")
    assert data.count(b"/Type /Page\n") == 1
    assert abs(float(box[2]) - width) < 1
    assert abs(float(box[3]) - height) < 1
