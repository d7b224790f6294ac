# Installs promptspool from a release, on Windows, once its checksum has been verified:
#
#   powershell -ExecutionPolicy Bypass -File install.ps1 URL
#
# URL is the folder with the files of one version. The program goes to
# %LOCALAPPDATA%\Programs\promptspool, which is added to your PATH.
param([Parameter(Mandatory = $true)][string]$Url)

$ErrorActionPreference = 'Stop'
if ($env:PROMPTSPOOL_PUBLIC_KEY) {
    throw 'This script verifies no signatures. Verify checksums.txt with openssl, as the page Install says, then unset PROMPTSPOOL_PUBLIC_KEY.'
}
$Url = $Url.TrimEnd('/')
[Net.ServicePointManager]::SecurityProtocol = [Net.SecurityProtocolType]::Tls12

$arch = switch ($env:PROCESSOR_ARCHITECTURE) {
    'AMD64' { 'amd64' }
    'ARM64' { 'arm64' }
    default { throw "There is no release for the processor $_." }
}

$tmp = Join-Path ([IO.Path]::GetTempPath()) ([Guid]::NewGuid())
New-Item -ItemType Directory $tmp | Out-Null
try {
    # The list says which archive is ours, and what must be in it.
    $list = Join-Path $tmp 'checksums.txt'
    Invoke-WebRequest -UseBasicParsing "$Url/checksums.txt" -OutFile $list
    $lines = @(Get-Content $list | Where-Object { $_ -match "^[0-9a-f]{64}  promptspool_[^/ ]*_windows_$arch\.zip$" })
    if ($lines.Count -ne 1) { throw "The release at $Url has $($lines.Count) archives for windows $arch, not one." }
    $sum, $name = $lines[0] -split '  '

    $archive = Join-Path $tmp $name
    Invoke-WebRequest -UseBasicParsing "$Url/$name" -OutFile $archive
    if ((Get-FileHash -Algorithm SHA256 $archive).Hash -ne $sum) {
        throw "$name is not what checksums.txt promises; nothing was installed."
    }

    Expand-Archive $archive $tmp
    $bin = Join-Path $env:LOCALAPPDATA 'Programs\promptspool'
    New-Item -ItemType Directory -Force $bin | Out-Null
    Copy-Item -Force (Join-Path $tmp 'promptspool.exe') $bin

    $path = [Environment]::GetEnvironmentVariable('Path', 'User')
    if (($path -split ';') -notcontains $bin) {
        [Environment]::SetEnvironmentVariable('Path', "$path;$bin".TrimStart(';'), 'User')
        Write-Output "$bin was added to your PATH; open a new terminal."
    }
    Write-Output "$bin\promptspool.exe: $(& "$bin\promptspool.exe" version)"
}
finally {
    Remove-Item -Recurse -Force $tmp
}
