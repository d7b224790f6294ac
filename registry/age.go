package registry

import "time"

// Age is for how long the server has told nothing of changed templates, of the account for which that is longest; 0 while it tells
// all of them.
func (c *Cache) Age() (age time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for _, f := range c.feeds {
		since := f.heardAt
		if since.IsZero() {
			since = f.born
		}
		if !f.connected {
			age = max(age, now.Sub(since))
		}
	}
	return age
}
