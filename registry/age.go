package registry

import "time"

// Age returns for how long the server has reported no template changes. Of several
// accounts the longest counts; it is 0 while every feed is connected.
func (c *Cache) Age() (age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := c.now()
	for _, f := range c.feeds {
		if f.connected {
			continue
		}
		since := f.heardAt
		// A feed that never answered counts from its start.
		if since.IsZero() {
			since = f.born
		}
		age = max(age, now.Sub(since))
	}

	return age
}
