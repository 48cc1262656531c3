# After leftovers_1_plant.
# expected: verdict=pass; stdout!~TRACE
# stdout: CLEAN\n
# runs: 4
found=
for folder in . /tmp /dev/shm /var/tmp /run /box "$HOME" /usr/lib /etc /dev /proc /run/lock; do
    for name in attack_left_1 attack_pipe attack_folder attack_link; do
        [ -e "$folder/$name" ] || [ -L "$folder/$name" ] && found="$found $folder/$name"
    done
done
if [ -n "$found" ]; then echo "TRACE$found"; else echo CLEAN; fi
