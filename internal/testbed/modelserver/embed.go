package modelserver

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
)

// defaultDimensions is the length of an embedding whose request names none.
const (
	defaultDimensions = 64
	maxDimensions     = 8192
)

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // []float32, or base64 of them in little-endian order
}

// embed answers /v1/embeddings. All inputs are one prompt to the engine, with one step to end it.
func (s *Server) embed(w http.ResponseWriter, r *http.Request, q request) *failure {
	if len(q.Input) == 0 {
		return badRequest("input is required.")
	}
	if q.Dimensions < 0 || q.Dimensions > maxDimensions {
		return badRequest("dimensions must be 1 to %d, got %d.", maxDimensions, q.Dimensions)
	}
	setDefault(&q.Dimensions, defaultDimensions)
	sequence, failed := s.submit(q.Input.tokens(), 1)
	if failed != nil {
		return failed
	}
	defer s.engine.abort(sequence)
	select {
	case <-sequence.tokens:
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	s.metrics.sawFirst(sequence)
	s.reportLoad(w, r)
	writeJSON(w, http.StatusOK, s.embeddings(q))
	return nil
}

func (s *Server) embeddings(q request) any {
	all := make([]embedding, len(q.Input))
	for i, text := range q.Input {
		vector := s.vector(q.Model, text, q.Dimensions)
		all[i] = embedding{Object: "embedding", Index: i, Embedding: vector}
		if q.EncodingFormat == "base64" {
			all[i].Embedding = encode(vector)
		}
	}
	n := q.Input.tokens()
	return map[string]any{
		"id": "embd-" + s.config.Name, "object": "list", "model": q.Model, "data": all, "usage": usage{Prompt: n, Total: n},
	}
}

// vector has length 1 and is determined by the seed, the model and the text.
func (s *Server) vector(model, text string, dimensions int) []float32 {
	random := random(s.config.Seed, model, []string{text})
	vector, square := make([]float32, dimensions), 0.0
	for i := range vector {
		x := random.NormFloat64()
		vector[i] = float32(x)
		square += x * x
	}
	for i := range vector {
		vector[i] /= float32(math.Sqrt(square))
	}
	return vector
}

func encode(vector []float32) string {
	var bytes []byte
	for _, x := range vector {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(bytes)
}
