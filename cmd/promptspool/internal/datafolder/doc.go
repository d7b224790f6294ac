// Package datafolder knows the layout of a role's data folder, and of the folder of `up`, which holds both.
package datafolder
