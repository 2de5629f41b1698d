// pdoc runs this file with Node.js, where there is one, to compile the search index in advance. The compiled index is four
// times as large as its texts, and the page compiles it in a moment: so it is left to the page, with or without Node.js.
process.exit(1);
