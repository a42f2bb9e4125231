using System;

namespace Shop
{
    /// <summary>An amount in one currency.</summary>
    public readonly struct Money : IComparable<Money>
    {
        public decimal Amount { get; }
        public string Currency { get; }

        public Money(decimal amount, string currency)
        {
            Amount = amount;
            Currency = currency ?? throw new ArgumentNullException(nameof(currency));
            Check();
        }

        public static Money OfCents(long cents) => new Money(cents / 100m, "EUR");

        public static Money operator +(Money one, Money other)
        {
            #region Check
            if (one.Currency != other.Currency)
                throw new InvalidOperationException($"{one.Currency} and {other.Currency}");
            #endregion
            return new Money(one.Amount + other.Amount, one.Currency);
        }

        public int CompareTo(Money other) => Amount.CompareTo(other.Amount);

        private void Check()
        {
#if DEBUG
            Console.WriteLine("checked");
#endif
        }
    }
}
