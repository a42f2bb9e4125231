# Sourced by the scripts that unpack archives of others; they define `say`.

# Removes links, devices, and folders of version control, of which programs run commands.
purge() { # folder what
  local wanted=(! -type f ! -type d) name count
  for name in .git '.git[. ]' '.git:*' 'git~[0-9]' .hg 'hg~[0-9]' .svn .bzr .jj .sl .pijul _darcs; do
    wanted+=(-o -iname "$name")
  done
  count=$(find "$1" \( "${wanted[@]}" \) -prune -print | grep -c '') || return 0
  find "$1" \( "${wanted[@]}" \) -prune -exec rm -rf {} +
  say "$2: left out $count links, devices and folders of version control"
}
