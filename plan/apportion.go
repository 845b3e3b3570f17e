package plan

// apportion divides parts, a multiple of grain, in proportion to weights, in whole grains by largest remainder, and
// adds them to into; of equal remainders the first is served first. Where all weights are 0 the first gets everything.
func apportion[W uint32 | int64](into []uint32, weights []W, parts, grain uint32) {
	var total float64
	for _, w := range weights {
		total += float64(w)
	}
	if total == 0 {
		into[0] += parts
		return
	}
	grains := int(parts / grain)
	remainders := make([]float64, len(weights))
	given := 0
	for i, w := range weights {
		exact := float64(w) / total * float64(grains)
		whole := int(exact)
		into[i] += uint32(whole) * grain
		remainders[i] = exact - float64(whole)
		given += whole
	}
	for ; given < grains; given++ {
		most := 0
		for i := range remainders {
			if remainders[i] > remainders[most] {
				most = i
			}
		}
		into[most] += grain
		remainders[most] = -1
	}
}
