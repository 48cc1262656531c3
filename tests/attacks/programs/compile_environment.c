// The compiler's own environment and descriptors.
// expected: verdict=compile_error|pass|ok|runtime_error|time_limit_wall; all!~@CANARY@; stdout!~ESCAPED
// stdout: CLEAN\n
#include <stdio.h>
__asm__(".section .rodata\n.globl held\nheld:\n.incbin \"/proc/self/environ\"\n.globl held_end\nheld_end:\n.byte 0\n.text");
extern const char held[], held_end[];
int main(void)
{
    for (const char *at = held; at < held_end; at++)
        putchar(*at ? *at : '\n');
    return 0;
}
