#!/bin/sh
# Installs promptspool from a release, on Linux and macOS, once its checksum has been verified:
#
#   sh install.sh URL
#
# URL is the folder with the files of one version. The program goes to /usr/local/bin if you may
# write there, or to ~/.local/bin.
#
# With PROMPTSPOOL_PUBLIC_KEY=FILE, the public key of whom you trust, it installs only if
# checksums.txt.sig is that key's signature of checksums.txt. This needs openssl.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

[ $# = 1 ] || fail "say where the release is: sh install.sh URL"
url=${1%/}

case $(uname -s) in
Linux) os=linux ;;
Darwin) os=darwin ;;
*) fail "there is no release for $(uname -s); on Windows use install.ps1" ;;
esac
case $(uname -m) in
x86_64 | amd64) arch=amd64 ;;
aarch64 | arm64) arch=arm64 ;;
*) fail "there is no release for the processor $(uname -m)" ;;
esac

key=${PROMPTSPOOL_PUBLIC_KEY-}
if [ -n "${PROMPTSPOOL_PUBLIC_KEY+set}" ]; then
	key=$(cat -- "$key") || fail "the public key in PROMPTSPOOL_PUBLIC_KEY cannot be read"
	command -v openssl >/dev/null || fail "openssl is needed to verify a signature"
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

get() {
	if command -v curl >/dev/null; then
		curl -fsSL -o "$1" "$url/$1"
	else
		wget -q -O "$1" "$url/$1"
	fi || fail "$url/$1 cannot be downloaded"
}

# The list says which archive is ours, and what must be in it.
get checksums.txt
if [ -n "${PROMPTSPOOL_PUBLIC_KEY+set}" ]; then
	get checksums.txt.sig
	echo "$key" >public.pem
	openssl dgst -sha256 -verify public.pem -signature checksums.txt.sig checksums.txt >/dev/null 2>&1 ||
		fail "checksums.txt is not signed with the key in $PROMPTSPOOL_PUBLIC_KEY; nothing was installed"
fi
grep " promptspool_[^/ ]*_${os}_$arch\.tar\.gz\$" checksums.txt >expected ||
	fail "the release at $url has no archive for $os $arch"
[ "$(wc -l <expected)" -eq 1 ] || fail "the release at $url has several archives for $os $arch"
read -r _ archive <expected

get "$archive"
if command -v sha256sum >/dev/null; then
	sha256sum -c expected >/dev/null 2>&1
else
	shasum -a 256 -c expected >/dev/null 2>&1
fi || fail "$archive is not what checksums.txt promises; nothing was installed"

tar -xzf "$archive" promptspool
bin=/usr/local/bin
if [ ! -w "$bin" ]; then
	bin=$HOME/.local/bin
	mkdir -p "$bin"
fi

# A program that runs cannot be overwritten, but another one can take its name.
install -m 755 promptspool "$bin/.promptspool.new"
mv "$bin/.promptspool.new" "$bin/promptspool"
echo "$bin/promptspool: $("$bin/promptspool" version)"
case ":$PATH:" in
*":$bin:"*) ;;
*) echo "$bin is not on your PATH." ;;
esac
