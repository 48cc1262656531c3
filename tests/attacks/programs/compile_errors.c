// Messages without end: each expansion is a line of its own.
// compiler_s: 30
// expected: verdict=compile_error|output_limit|time_limit_wall|time_limit_cpu|memory_limit
#define A(x) x x x x x x x x x x
#define B(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x)
#define C(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x)
#define D(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x)
int main(void)
{
    D(undeclared;)
    return @;
}
