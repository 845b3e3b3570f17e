package verify

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// A word that is no field, or no field of a message with that name, would never let anything pass: it is a mistake.
func TestVocabularyIsOfEnvoysAPI(t *testing.T) {
	for name, words := range vocabulary {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, word := range words {
			if word != anyField && kind.Descriptor().Fields().ByName(protoreflect.Name(word)) == nil {
				t.Errorf("%s has no field %s", name, word)
			}
		}
	}
}

// Every message that an understood field can hold is understood itself, or else the field could never be set.
func TestVocabularyHasNoDeadEnds(t *testing.T) {
	for name, words := range vocabulary {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(name)
		if err != nil {
			continue // said above
		}
		for _, word := range words {
			f := kind.Descriptor().Fields().ByName(protoreflect.Name(word))
			if f == nil {
				continue
			}
			if f.IsMap() {
				f = f.MapValue()
			}
			m := f.Message()
			if m == nil || m.FullName() == "google.protobuf.Any" {
				continue
			}
			if _, known := vocabulary[m.FullName()]; !known {
				t.Errorf("%s.%s holds %s, which is not in the vocabulary", name, word, m.FullName())
			}
		}
	}
}
