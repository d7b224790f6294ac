package accounts

import (
	"promptspool/api/wire"
	"promptspool/spool/archive/transfer"
)

// Item is a row of one of Moves, as it is copied to another database.
func (r Row) Item() (item transfer.Item) {
	switch row := r.Of.(type) {
	case *wire.Account:
		item.Account = row
	case *wire.Key:
		item.Key = &transfer.Hashed[wire.Key]{Hash: [32]byte([]byte(r.Key)), Of: *row}
	case *transfer.Person:
		item.User = row
	case *wire.Invite:
		item.Invite = &transfer.Hashed[wire.Invite]{Hash: [32]byte([]byte(r.Key)), Of: *row}
	case *wire.Session:
		item.Session = &transfer.Hashed[wire.Session]{Hash: [32]byte([]byte(r.Key)), Of: *row}
	}

	return item
}

// Import writes an item of another database, if it is a row of one of Moves.
func Import(tx Tx, item *transfer.Item) error {
	switch {
	case item.Account != nil:
		return tx.Put(Accounts, item.Account.Name, item.Account)
	case item.Key != nil:
		return tx.Put(Keys, string(item.Key.Hash[:]), &item.Key.Of)
	case item.User != nil:
		return tx.Put(Users, item.User.ID, item.User)
	case item.Invite != nil:
		return tx.Put(Invites, string(item.Invite.Hash[:]), &item.Invite.Of)
	case item.Session != nil:
		return tx.Put(Sessions, string(item.Session.Hash[:]), &item.Session.Of)
	}

	return nil
}
