package modelserver

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"
)

var vocabulary = strings.Fields(`a above across again all along always amber among an and any arc as at autumn away back
	bay because before below beside between beyond blue both bright broad but by calm cape city clear close cloud coast
	cold compass country course current dark dawn day deep delta distant down drift dry each early east equator even
	evening every far field first forest from full gate gentle glass gold grain green ground half harbour high hill home
	horizon if in inland into island it just keel lake land large last late leaf level light line long low map meridian
	middle mile moon more morning mountain near never new night noon north of on once open or outward over pale path
	plain pole port quiet rain range reef rise river road rock round safe sail salt sand sea season shallow shore silver
	sky slow small snow south spring star steady still stone storm stream summer sun swift tall the then through tide to
	toward under until up valley warm water wave west where while white wide wind winter with within wood year`)

// words are the tokens of an answer. Those of a longer answer to the same prompt begin alike.
type words struct {
	random *rand.Rand
	begun  bool
}

func newWords(seed uint64, model string, prompt []string) *words {
	return &words{random: random(seed, model, prompt)}
}

// random is determined by its arguments.
func random(seed uint64, model string, prompt []string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, model)
	for _, text := range prompt {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		_, _ = io.WriteString(h, text)
	}
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// next is the next token: a word, with the blank before it if it is not the first.
func (w *words) next() string {
	word := vocabulary[w.random.IntN(len(vocabulary))]
	if !w.begun {
		w.begun = true
		return word
	}
	return " " + word
}
