# 20 processes at once of 32.
# expected: verdict=pass
# stdout: 20\n
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sleep 0.2; echo $i) & done | wc -l
wait
