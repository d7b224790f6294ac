// Package archivetool has the commands on a server's archive: `promptspool archive ...`, `backup` and `restore`.
package archivetool
