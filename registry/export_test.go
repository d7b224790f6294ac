package registry

// SetBounds makes a cache small enough for a test to fill.
func (c *Cache) SetBounds(count, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.countMax, c.entries.bytesMax = count, bytes
}

// SetOpened bounds the bytes of opened templates.
func (c *Cache) SetOpened(bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.openedBytesMax = bytes
}

// Opened returns how many templates are open, and how many bytes they take.
func (c *Cache) Opened() (count, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.opened.Len(), c.entries.openedBytes
}
