// Package llm holds the nouns of talking to a language model: Request, Reply, Usage and Client. It knows kernels as text.
// Subpackages are the providers, propose (prompt to draft) and cassette (record and replay).
package llm
