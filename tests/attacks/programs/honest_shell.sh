# Everyday tools.
# expected: verdict=pass
# stdin: b\na\nc\n
# stdout: a,b,c\n6\n
set -e
sort > sorted
paste -sd, sorted
seq 1 3 | awk '{ s += $1 } END { print s }'
d=$(mktemp -d) && touch "$d/x" && ls "$d" | grep -q x && find . -name sorted | xargs cat > /dev/null
