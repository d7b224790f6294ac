package registry

// SetBounds makes a cache small enough for a test to fill.
func (c *Cache) SetBounds(count, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.countMax, c.entries.bytesMax = count, bytes
}
