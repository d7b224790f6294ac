// Package textindex tells which of many texts may have some words, without reading them. Package
// words defines what a word is.
//
// An index of up to [DocsMax] documents, which are numbered in an order of their owner, has 256
// pages. A [Term] is the hash of a word, of two neighbouring characters, or of two words that a
// character like - or _ joins, if one of them is short. Each term is in one page, which has the
// documents of rare terms one by one, and groups of the documents of others; of the most frequent
// it only says that they are there. So a page may let too much pass, never too little: what
// passes has to be looked at. A page has hashes of 24 bits, no words.
//
// Of 4,096 texts of 4 KB with English words, code and ids the pages have about 6 % of the texts'
// size. To look up a word reads one page, 4 KB.
package textindex
