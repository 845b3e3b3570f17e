package flow

// item is a node at a tentative distance.
type item struct {
	distance int64
	node     int32
}

// before orders items by distance, then node, so that ties are broken in one way only.
func (a item) before(b item) bool {
	return a.distance < b.distance || a.distance == b.distance && a.node < b.node
}

// heap is a binary min-heap; container/heap would box every item.
type heap []item

func (h *heap) push(x item) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for i > 0 && x.before(s[(i-1)/2]) {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
}

func (h *heap) pop() item {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for child := 1; child < len(s); child = 2*i + 1 {
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if !s[child].before(last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = last
	}
	return top
}
