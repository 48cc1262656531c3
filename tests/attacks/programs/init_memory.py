# Process 1 shares its memory with the process that made it: whoever may open it owns every program after this one.
# expected: verdict=ok; stdout~DONE; stdout!~ESCAPED
import os
for pid in ('1', str(os.getppid())):
    for name, mode in (('mem', os.O_RDWR), ('mem', os.O_RDONLY), ('maps', os.O_RDONLY), ('environ', os.O_RDONLY), ('auxv', os.O_RDONLY),
                       ('stack', os.O_RDONLY), ('syscall', os.O_RDONLY), ('pagemap', os.O_RDONLY), ('map_files', os.O_RDONLY),
                       ('clear_refs', os.O_WRONLY), ('uid_map', os.O_WRONLY), ('gid_map', os.O_WRONLY), ('setgroups', os.O_WRONLY)):
        try:
            file = os.open('/proc/%s/%s' % (pid, name), mode)
        except OSError:
            continue
        if name.endswith('map') or name == 'setgroups' or name == 'clear_refs':
            try:
                os.write(file, b'0 0 1\n')
                print('ESCAPED wrote', pid, name)
            except OSError:
                pass
        elif name == 'map_files':
            print('ESCAPED', pid, name)
        else:
            try:
                data = os.read(file, 64)
            except OSError:
                continue
            if data:
                print('ESCAPED read', pid, name, data[:20])
    for name in ('root', 'cwd', 'exe', 'ns/mnt', 'ns/net', 'ns/user', 'ns/pid'):
        try:
            print('ESCAPED', pid, name, os.readlink('/proc/%s/%s' % (pid, name)))
        except OSError:
            pass
    try:
        print('ESCAPED', os.listdir('/proc/%s/fd' % pid))
    except OSError:
        pass
print('DONE')
