"""Forty texts that have hurt notebooks, pages or renderers before, or could. Views must show them and do nothing else.

Those that run script set `window.pwned`, so that a browser can tell.
"""

ATTACKS: list[str] = [
    # script, in elements, attributes and odd spellings
    "<script>window.pwned=1</script>",
    "<ScRiPt >window.pwned=1</sCrIpT>",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<img src=x onerror=&#119;indow.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><animate onbegin=window.pwned=1 attributeName=x dur=1s>",
    "<svg><set attributeName=href to=javascript:window.pwned=1>",
    "<body onload=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<object data='data:text/html,<script>window.pwned=1</script>'></object>",
    "<math><mi//xlink:href='data:x,<script>window.pwned=1</script>'>",
    "<a href='javascript:window.pwned=1'>click</a>",
    "<a href=' &#106;avascript:window.pwned=1'>click</a>",
    "javascript:window.pwned=1",
    "[click](javascript:window.pwned=1)",
    "![x](https://example.invalid/leak.png)",
    "<link rel=stylesheet href=//example.invalid/leak.css>",
    "<style>*{background:url(https://example.invalid/leak)}</style>",
    "x{}</style><img src=x onerror=window.pwned=1>",
    "<div style='width:expression(window.pwned=1)'>",
    # leaving quotes, comments and sections
    '"><img src=x onerror=window.pwned=1>',
    "'><img src=x onerror=window.pwned=1>",
    "` onmouseover=window.pwned=1 `",
    '" onfocus=window.pwned=1 autofocus="',
    "--><img src=x onerror=window.pwned=1><!--",
    "]]><img src=x onerror=window.pwned=1><![CDATA[",
    # entities
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "&#60;img src=x onerror=window.pwned=1&#62;",
    "&amp;lt;script&amp;gt;",
    '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>',
    # DOT and Graphviz
    '"]; evil [label="owned" URL="javascript:window.pwned=1"]; x [label="',
    "<b>bold</b><IMG SRC='/etc/passwd'/>",
    "\\N\\G\\E\\T\\H\\l\\r \\",
    "a -> b; c } digraph { d",
    # invisible and broken text
    "safe\u202e>gnp.exe<\u2066txt",
    "nul\x00 bell\x07 escape\x1b[31m delete\x7f c1\x9b",
    "lone \ud800 half, \ufffe non-character, \u200b zero width, tag \U000e0041",
    "x" * 200_000,
]
