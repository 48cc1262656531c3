# 24 processes at once of 32: each of twelve waits for one of its own.
# expected: verdict=pass
# stdout: 12\n
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do (sleep 0.2; echo $i) & done | wc -l
wait
