// A binary of 16 GiB, from a line.
// compiler_s: 30
// expected: verdict=compile_error|time_limit_wall|time_limit_cpu|memory_limit|disk_limit|output_limit|runtime_error
// memory_mb: 700
char block[1L << 34] = {1};
int main(void)
{
    return block[1];
}
