// Package modelserver is an HTTP server that acts like vLLM: what a gateway sees of it is meant to be the same.
//
// It speaks OpenAI's API (chat, completions, embeddings, responses; unary and streamed), exports vLLM's metrics by
// their names, and has an engine that batches continuously: a bounded number of sequences runs, the rest waits in
// order, prompts are computed in chunks, each step yields a token for each sequence and takes longer the more there
// are, and the KV cache fills and preempts. Only the text is made up: words chosen by the seed, the model and the
// prompt, the same each time. Faults come and go by SetFault, and Kill ends it as a SIGKILL would.
//
// What has no bearing on where a request goes is ignored: sampling, tools, log probabilities, prefix caching, several
// choices. A token is four bytes of prompt.
//
// The end-to-end tests and the demo run it. The methods of a Server are safe for concurrent use.
package modelserver
