package mesh

import "context"

// connect puts the wide area between clusters. Without delays it is not there.
func (m *Mesh) connect(context.Context) error { return nil }
