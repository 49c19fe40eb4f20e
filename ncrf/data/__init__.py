"""From files to strings and numbers: corpora, label schemes, alphabets and vectors."""
