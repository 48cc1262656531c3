// Files of the machine by every way that a compiler has.
// expected: verdict=compile_error|pass|ok|runtime_error; all!~@CANARY@; stdout!~ESCAPED
// stdout: CLEAN\n
#include <stdio.h>
#include <string.h>
__asm__(".section .rodata\n.globl held\nheld:\n.incbin \"@SECRET_FILE@\"\n.byte 0\n.text");
extern const char held[];
int main(void)
{
    puts(strstr(held, "CANARY") ? "ESCAPED" : "CLEAN");
    return 0;
}
