// Includes itself.
// compiler_s: 30
// expected: verdict=compile_error|time_limit_wall|time_limit_cpu|memory_limit|output_limit
#include __FILE__
#include __FILE__
int main(void)
{
    return 0;
}
