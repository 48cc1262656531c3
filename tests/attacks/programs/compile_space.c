// The same by the assembler.
// compiler_s: 30
// expected: verdict=compile_error|time_limit_wall|time_limit_cpu|memory_limit|disk_limit|output_limit|runtime_error
// memory_mb: 700
__asm__(".data\n.fill 0x40000000, 8, 7\n.text");
int main(void)
{
    return 0;
}
