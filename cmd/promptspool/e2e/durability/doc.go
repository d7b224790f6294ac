// Package durability tests that nothing acknowledged is lost or doubled: by kills, power cuts, full and broken disks,
// databases that stop, backups and copies.
package durability
