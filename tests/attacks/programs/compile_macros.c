// Macros that grow by the power.
// expected: verdict=compile_error|time_limit_wall|time_limit_cpu|memory_limit
// memory_mb: 1500
#define A(x) x x x x x x x x x x
#define B(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x) A(x)
#define C(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x)
#define D(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x)
#define E(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x)
int main(void)
{
    volatile int n = 0;
    E(C(n++;))
    return 0;
}
