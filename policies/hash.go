package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// hashOf identifies a set's content. Where objects were read is not part of it.
func hashOf(s *Set) string {
	content := *s
	content.Hash = ""
	bytes, err := json.Marshal(content)
	if err != nil { // a Set holds only what JSON can say
		return ""
	}
	sum := sha256.Sum256(bytes)
	return hex.EncodeToString(sum[:])
}
