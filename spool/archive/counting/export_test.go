package counting

// Kept returns how many answers are kept, and their size.
func (c *Service) Kept() (answers, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.last), c.bytes
}
